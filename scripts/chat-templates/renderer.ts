import type { Form } from './bodies.ts'

/** Something that renders one template after the other. */
export interface Renderer {
  readonly name: string
  /** What it can be asked for. */
  readonly forms: readonly Form[]
  /** The template that the next bodies are rendered with. */
  load(path: string): Promise<void>
  /** What the template said against a request body; undefined when it was rendered. */
  problemOf(body: string): Promise<string | undefined>
  close(): Promise<void>
}
