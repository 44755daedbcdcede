import type { JSX } from 'preact'
import type { Attached, Attachments } from '../lib/attachments.ts'
import { bytes } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { Icon } from './icons.tsx'

/** The files of a draft, each with its state, and what was refused. */
export function AttachedFiles({ attachments }: { readonly attachments: Attachments }): JSX.Element | null {
  const words = texts.value.conversation
  const files = attachments.files.value
  const refused = attachments.refused.value
  if (files.length === 0 && refused === undefined) return null
  return (
    <div class="attached">
      {files.length > 0 && (
        <ul aria-label={words.files}>
          {files.map((file) => (
            <FileChip key={file.local} file={file} attachments={attachments} />
          ))}
        </ul>
      )}
      {refused !== undefined && (
        <p class="ending" role="alert">
          <Icon name="warning" size={15} />{' '}
          {refused.reason === 'large' ? words.tooLarge(refused.name) : words.tooMany(refused.name)}
        </p>
      )}
    </div>
  )
}

function FileChip({ file, attachments }: { readonly file: Attached; readonly attachments: Attachments }): JSX.Element {
  const words = texts.value.conversation
  const state = { uploading: words.uploading, ready: bytes(file.bytes), failed: words.notUploaded }[file.state]
  return (
    <li class={`file-chip ${file.state}`}>
      <Icon name={file.state === 'failed' ? 'warning' : 'file'} size={15} />
      <span class="file-name" title={file.error ?? file.name}>
        {file.name}
      </span>
      <span class="quiet">
        {state}
        {file.error !== undefined && `: ${file.error}`}
      </span>
      {file.state === 'failed' && (
        <button type="button" class="button small" onClick={() => attachments.tryAgain()}>
          {texts.value.state.again}
        </button>
      )}
      <button
        type="button"
        class="chip-remove"
        aria-label={words.removeFile(file.name)}
        onClick={() => attachments.remove(file.local)}
      >
        <Icon name="cross" size={14} />
      </button>
    </li>
  )
}
