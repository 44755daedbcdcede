/** A server-sent event with a name, as Anthropic and OpenAI's Responses write it. */
export function namedEvent(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}

/** A server-sent event without a name, as the chat APIs write it. */
export function dataEvent(data: string): string {
  return `data: ${data}\n\n`
}

/** Google ends its lines the other way. */
export function crlfDataEvent(data: string): string {
  return `data: ${data}\r\n\r\n`
}
