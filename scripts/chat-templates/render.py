"""Renders chat templates as the servers written in Python do, with Jinja2 and the settings of transformers.

One JSON object per line in: {"template": source} or {"body": request}. One line out for each body: null when it was
rendered, else what the template said.
"""

import datetime
import json
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import SandboxedEnvironment


class Generation(Extension):
    """Marks the model's own words for training; here it shows its content."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys, default=list
    )


# Two published templates append to lists, which the stricter sandbox forbids.
environment = SandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
)
environment.filters["tojson"] = to_json
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = lambda form: datetime.datetime(2026, 1, 1).strftime(form)


def with_parsed_arguments(message):
    if "tool_calls" not in message:
        return message
    calls = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def render(template, messages, tools):
    template.render(
        messages=messages,
        tools=tools,
        documents=None,
        add_generation_prompt=True,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        # What the servers of firefunction set.
        functions=json.dumps(tools),
        datetime="2026-01-01",
    )


def problem_of(template, body):
    """Servers parse the arguments of calls; a few templates want the text, and their servers leave it."""
    messages, tools = body["messages"], body.get("tools")
    try:
        render(template, [with_parsed_arguments(message) for message in messages], tools)
        return None
    except Exception as first:
        try:
            render(template, messages, tools)
            return None
        except Exception:
            return f"{type(first).__name__}: {first}"


current = None
for line in sys.stdin:
    order = json.loads(line)
    if "template" in order:
        current = environment.from_string(order["template"])
    else:
        print(json.dumps(problem_of(current, order["body"])), flush=True)
