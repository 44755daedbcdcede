import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import type { CommandLine } from '../../src/base/commands.ts'
import type { ScriptedRun } from './scripted-commands.ts'

/**
 * The seed's case: a wrong program is written, fails, and is fixed. Lengths are those of an ordinary small script and an
 * ordinary traceback, nothing is padded.
 */
export const INSTRUCTION =
  '写一个 Python 脚本 sales.py：读取 sales.csv，按月汇总销售额，打印一张对齐的表格，并给出全年总额和最好的月份。运行它，确认结果正确。'

const WRONG = `"""Monthly sales report."""
import csv
import sys
from collections import defaultdict
from datetime import datetime


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            yield row


def month_of(text):
    return datetime.strptime(text, "%d/%m/%Y").strftime("%Y-%m")


def summarise(rows):
    totals = defaultdict(float)
    for row in rows:
        totals[month_of(row["date"])] += float(row["amount"])
    return totals


def print_table(totals):
    width = max(len(month) for month in totals)
    print(f"{'month':<{width}} {'amount':>12}")
    print("-" * (width + 13))
    for month in sorted(totals):
        print(f"{month:<{width}} {totals[month]:>12,.2f}")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "sales.csv"
    totals = summarise(read_rows(path))
    print_table(totals)
    best = max(totals, key=totals.get)
    print()
    print(f"total {sum(totals.values()):,.2f}")
    print(f"best month {best} ({totals[best]:,.2f})")


if __name__ == "__main__":
    main()
`

const TRACEBACK = `Traceback (most recent call last):
  File "/home/clew/workspace/sales.py", line 46, in <module>
    main()
  File "/home/clew/workspace/sales.py", line 37, in main
    totals = summarise(read_rows(path))
             ^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/clew/workspace/sales.py", line 21, in summarise
    totals[month_of(row["date"])] += float(row["amount"])
           ^^^^^^^^^^^^^^^^^^^^^
  File "/home/clew/workspace/sales.py", line 15, in month_of
    return datetime.strptime(text, "%d/%m/%Y").strftime("%Y-%m")
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/lib/python3.12/_strptime.py", line 554, in _strptime_datetime
    tt, fraction, gmtoff_fraction = _strptime(data_string, format)
                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/lib/python3.12/_strptime.py", line 333, in _strptime
    raise ValueError("time data %r does not match format %r" %
ValueError: time data '2025-01-03' does not match format '%d/%m/%Y'
`

const TABLE = `month         amount
--------------------
2025-01    12,480.50
2025-02     9,310.00
2025-03    15,220.75
2025-04    11,004.10
2025-05    13,650.00
2025-06    18,902.35

total 80,567.70
best month 2025-06 (18,902.35)
`

export const FINAL = `脚本 sales.py 已经写好并运行成功。

最终代码的要点：

- \`read_rows\` 用 \`csv.DictReader\` 逐行读取 sales.csv；
- \`month_of\` 把 ISO 日期（2025-01-03）截取为月份，这是修复后的写法；
- \`summarise\` 按月累加，金额里的千位逗号会先去掉；
- \`print_table\` 打印对齐的表格。

结果：全年总额 80,567.70，最好的月份是 2025-06（18,902.35）。`

/** Three rounds, seven messages with the system prompt: instruction, write+run, its failure, fix+run, its success, final. */
export const ANSWERS: readonly ScriptedAnswer[] = [
  {
    blocks: [
      { type: 'text', text: '我先写脚本，然后运行它。' },
      { type: 'toolCall', name: 'exec', arguments: { program: 'python3', arguments: ['-c', WRONG], stdin: '' } },
    ],
  },
  {
    blocks: [
      {
        type: 'text',
        text: '日期是 ISO 格式（2025-01-03），而我按 日/月/年 解析。我改用 date.fromisoformat，并顺便处理金额里的千位逗号。',
      },
      {
        type: 'toolCall',
        name: 'exec',
        arguments: {
          program: 'python3',
          arguments: [
            '-c',
            WRONG.replace(
              'datetime.strptime(text, "%d/%m/%Y").strftime("%Y-%m")',
              'date.fromisoformat(text).strftime("%Y-%m")',
            ).replace('float(row["amount"])', 'float(row["amount"].replace(",", ""))'),
          ],
        },
      },
    ],
  },
  { blocks: [{ type: 'text', text: FINAL }] },
]

/** The wrong program fails, the fixed one prints its table. */
export function python({ arguments: given }: CommandLine): ScriptedRun {
  return given.some((part) => part.includes('%d/%m/%Y')) ? { code: 1, stderr: TRACEBACK } : { stdout: TABLE }
}

export const FAILURE = "ValueError: time data '2025-01-03'"
