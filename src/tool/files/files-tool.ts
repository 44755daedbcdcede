import { assertNever } from '../../base/assert-never.ts'
import { directoryOf, errnoOf, type Files, makeDurableDirectory } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import { errorResult, textResult } from '../results.ts'
import type { Tool, ToolCall, ToolResult } from '../tool.ts'
import { editText, listFolder, sliceLines } from './actions.ts'
import { FILE_LIMITS, type FileLimits, readTextFile, writeTextFile } from './text-file.ts'
import { refuseVersionControl } from './version-control.ts'
import { PathRefused, resolveInWorkspace, type WorkspacePath } from './workspace.ts'

export interface FilesToolOptions {
  readonly files: Files
  readonly ids: Ids
  /** Absolute; created when it is missing. Nothing outside it is read or written. */
  readonly workspace: string
  readonly limits?: Partial<FileLimits>
  /** Keeps a copy of a file for the answer; without it nothing can be sent. */
  readonly send?: (file: { readonly path: string; readonly name: string }, owner: string) => Promise<JsonObject>
  /** True where programs may be run: then the folders of version control are read only. */
  readonly protectVersionControl?: boolean
}

type Action = 'read' | 'list' | 'write' | 'append' | 'edit' | 'move' | 'delete' | 'send'

const ACTIONS: readonly Action[] = ['read', 'list', 'write', 'append', 'edit', 'move', 'delete', 'send']

const PARAMETERS: JsonObject = {
  type: 'object',
  properties: {
    action: { type: 'string', enum: ACTIONS },
    path: { type: 'string', description: 'Relative to the workspace, with "/" between names. "." is the workspace.' },
    text: { type: 'string', description: 'write, append: the text. edit: the replacement.' },
    find: { type: 'string', minLength: 1, description: 'edit: the exact text to replace; it must occur once.' },
    to: { type: 'string', description: 'move: the new path.' },
    offset: { type: 'integer', minimum: 1, description: 'read: the first line, counted from 1.' },
    limit: { type: 'integer', minimum: 1, description: 'read: how many lines. list: how many names.' },
  },
  required: ['action', 'path'],
  additionalProperties: false,
}

export function createFilesTool(options: FilesToolOptions): Tool {
  const limits = { ...FILE_LIMITS, ...options.limits }
  const { files, workspace } = options
  let isDurable = false
  const prepareWorkspace = async (): Promise<void> => {
    if (isDurable && (await files.stat(workspace)) !== undefined) return
    await makeDurableDirectory(files, workspace)
    isDurable = true
  }
  return {
    name: 'files',
    source: 'built-in',
    description:
      'Reads, lists, writes, appends to, edits, moves and deletes text files in the workspace. Missing folders are created. "send" gives the user a file of any kind together with your answer.',
    parameters: PARAMETERS,
    parallel: false,
    repeatable: false,
    traitsOf: (callArguments) => {
      const action = callArguments['action']
      const reads = action === 'read' || action === 'list'
      return { parallel: reads, repeatable: reads || action === 'write' || action === 'delete' }
    },
    run: async (call, signal) => {
      signal.throwIfAborted()
      try {
        await prepareWorkspace()
        return await new FileActions({ ...options, limits }, call).run()
      } catch (error) {
        if (error instanceof PathRefused) return errorResult(`Not done: ${error.message}.`)
        const problem = ERRNO_PROBLEMS[errnoOf(error) ?? '']
        if (problem === undefined) throw error
        return errorResult(`Not done: ${problem}.`)
      }
    },
  }
}

class FileActions {
  readonly #deps: FilesToolOptions & { readonly limits: FileLimits }
  readonly #arguments: JsonObject
  readonly #owner: string | undefined

  constructor(deps: FilesToolOptions & { readonly limits: FileLimits }, call: ToolCall) {
    this.#deps = deps
    this.#arguments = call.arguments
    this.#owner = call.owner
  }

  async run(): Promise<ToolResult> {
    const at = await this.#resolve('path')
    const action = this.#action()
    if (action !== 'read' && action !== 'list' && action !== 'send') this.#refuseProtected(at)
    switch (action) {
      case 'read':
        return this.#read(at)
      case 'list':
        return this.#list(at)
      case 'write':
        return this.#store(at, this.#text('text'), 'Wrote')
      case 'append':
        return this.#append(at)
      case 'edit':
        return this.#store(
          at,
          editText(await this.#content(at), at.name, this.#text('find'), this.#text('text')),
          'Edited',
        )
      case 'move':
        return this.#move(at)
      case 'delete':
        return this.#delete(at)
      case 'send':
        return this.#send(at)
      default:
        return assertNever(action)
    }
  }

  async #read(at: WorkspacePath): Promise<ToolResult> {
    const text = await this.#content(at)
    return textResult(sliceLines(text, this.#number('offset') ?? 1, this.#number('limit'), this.#deps.limits))
  }

  async #list(at: WorkspacePath): Promise<ToolResult> {
    const wanted = Math.min(this.#number('limit') ?? Number.POSITIVE_INFINITY, this.#deps.limits.maxListed)
    return textResult(await listFolder(this.#deps.files, at, wanted))
  }

  async #append(at: WorkspacePath): Promise<ToolResult> {
    const before = at.stat === undefined ? '' : await this.#content(at)
    return this.#store(at, before + this.#text('text'), 'Appended to')
  }

  async #store(at: WorkspacePath, text: string, verb: string): Promise<ToolResult> {
    await writeTextFile(this.#deps, at, text, this.#deps.limits)
    return textResult(`${verb} ${at.name} (${Buffer.byteLength(text)} bytes).`, { filesWritten: [at.name] })
  }

  async #move(from: WorkspacePath): Promise<ToolResult> {
    const to = await this.#resolve('to')
    this.#refuseProtected(to)
    if (from.stat === undefined) throw new PathRefused(`"${from.name}" does not exist`)
    if (from.isLinked) throw linkRefused(from)
    if (from.name === '.' || to.name === '.') throw new PathRefused('the workspace itself cannot be moved')
    if (to.stat !== undefined) throw new PathRefused(`"${to.name}" exists already`)
    if (`${to.path}/`.startsWith(`${from.path}/`)) throw new PathRefused('a folder cannot be moved into itself')
    const { files } = this.#deps
    await makeDurableDirectory(files, directoryOf(to.path))
    await files.rename(from.path, to.path)
    // The new name first: between the two a power cut leaves both, never none.
    await files.syncDirectory(directoryOf(to.path))
    await files.syncDirectory(directoryOf(from.path))
    return textResult(`Moved ${from.name} to ${to.name}.`, { filesWritten: [to.name], filesRemoved: [from.name] })
  }

  async #delete(at: WorkspacePath): Promise<ToolResult> {
    if (at.stat === undefined) return textResult(`${at.name} does not exist.`)
    if (at.isLinked) throw linkRefused(at)
    const { files } = this.#deps
    if (at.name === '.') throw new PathRefused('the workspace itself cannot be deleted')
    if (at.stat.kind === 'directory') {
      if ((await files.list(at.path)).length > 0) throw new PathRefused(`the folder "${at.name}" is not empty`)
      await files.removeDirectory(at.path)
    } else await files.remove(at.path)
    await files.syncDirectory(directoryOf(at.path))
    return textResult(`Deleted ${at.name}.`, { filesRemoved: [at.name] })
  }

  /** The copy is made now: what happens to the file afterwards does not change what was sent. */
  async #send(at: WorkspacePath): Promise<ToolResult> {
    const { send } = this.#deps
    if (send === undefined || this.#owner === undefined) throw new PathRefused('files cannot be sent from here')
    if (at.stat === undefined) throw new PathRefused(`"${at.name}" does not exist`)
    if (at.stat.kind !== 'file') throw new PathRefused(`"${at.name}" is not a file`)
    const attached = await send({ path: at.path, name: at.name.slice(at.name.lastIndexOf('/') + 1) }, this.#owner)
    return textResult(`${at.name} goes with your answer.`, { attached: [attached] })
  }

  #refuseProtected(at: WorkspacePath): void {
    if (this.#deps.protectVersionControl === true) refuseVersionControl(at)
  }

  #content(at: WorkspacePath): Promise<string> {
    return readTextFile(this.#deps.files, at, this.#deps.limits)
  }

  #resolve(argument: 'path' | 'to'): Promise<WorkspacePath> {
    return resolveInWorkspace(this.#deps.files, this.#deps.workspace, this.#text(argument))
  }

  #text(argument: 'path' | 'to' | 'text' | 'find'): string {
    const value = this.#arguments[argument]
    if (typeof value === 'string') return value
    throw new PathRefused(`the action "${this.#action()}" needs "${argument}"`)
  }

  #action(): Action {
    const asked = this.#arguments['action']
    const action = ACTIONS.find((known) => known === asked)
    if (action === undefined) throw new PathRefused(`the action must be one of ${ACTIONS.join(', ')}`)
    return action
  }

  #number(argument: 'offset' | 'limit'): number | undefined {
    const value = this.#arguments[argument]
    return typeof value === 'number' ? value : undefined
  }
}

/** It would be the target that goes, under a name the model did not write. */
function linkRefused(at: WorkspacePath): PathRefused {
  return new PathRefused(`"${at.name}" is or goes through a link; name the file itself`)
}

/** Other failures cannot be corrected by the model. */
const ERRNO_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: 'the system does not permit it',
  EPERM: 'the system does not permit it',
  EROFS: 'the system does not permit it',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  ENOENT: 'a part of the path does not exist',
  ENOTDIR: 'a part of the path is not a folder',
  EEXIST: 'something with this name exists already',
  ENOTEMPTY: 'something with this name exists already',
  ELOOP: 'the path has links that lead in a circle',
  ENAMETOOLONG: 'the path is too long',
}
