import type { JSX } from 'preact'
import { texts } from '../lib/language.ts'

/** Where the bytes that the request shares with the one before end. */
export function CacheLine({ before, columns }: { readonly before: number; readonly columns: number }): JSX.Element {
  return (
    <td colSpan={columns}>
      <span>{texts.value.xray.cacheLine(before)}</span>
    </td>
  )
}
