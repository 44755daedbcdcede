/** Code of the user's own, loaded while the program runs. */
export interface Modules {
  /** The module's exports. Rejects with whatever loading it threw. */
  importModule(absolutePath: string): Promise<unknown>
  /** An absolute path or a `file:` URL stays what it is; anything else is relative to the folder. */
  resolvePath(directory: string, path: string): string
}
