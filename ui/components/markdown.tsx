import type { Token, Tokens } from 'marked'
import { memo } from 'preact/compat'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { GrowingMarkdown, piecesOf } from '../lib/growing-markdown.ts'
import { withoutEntities } from '../lib/entities.ts'
import { texts } from '../lib/language.ts'
import { CopyButton } from './basics.tsx'

/** From so many on, blocks out of sight are not laid out. */
const MANY_BLOCKS = 30

/**
 * Model text as elements, also while it is being written. HTML in it is shown as letters, links lead only to web and
 * mail addresses.
 */
export const Markdown = memo(function Markdown({ text }: { readonly text: string }): JSX.Element {
  const reader = useMemo(() => new GrowingMarkdown(), [])
  const shown = useGradually(text)
  const { done, growing, plain } = useMemo(() => reader.read(shown), [shown])
  return (
    <div class={`markdown ${done.length > MANY_BLOCKS ? 'many-blocks' : ''}`}>
      {blocks([...done, ...growing])}
      {plain !== '' && <LongText text={plain} />}
    </div>
  )
})

/** So much of a text is shown at once, and so much more with each frame. */
const FIRST_CHARS = 8_000
const MORE_CHARS = 1_000

/** A long text bit by bit, so that no frame takes long. */
function useGradually(text: string): string {
  const before = useRef({ text, length: Math.min(text.length, FIRST_CHARS) })
  const [, setFrames] = useState(0)
  const goesOn = text.startsWith(before.current.text.slice(0, before.current.length))
  const length = Math.min(text.length, goesOn ? before.current.length + MORE_CHARS : FIRST_CHARS)
  const isWhole = length === text.length
  useEffect(() => {
    before.current = { text, length }
    if (isWhole) return
    const frame = requestAnimationFrame(() => setFrames((frames) => frames + 1))
    return () => cancelAnimationFrame(frame)
  })
  return isWhole ? text : text.slice(0, length)
}

/** A text of any length as it was written; what is out of sight costs nothing. */
export function LongText({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="long-text">
      {piecesOf(text).map((piece, at) => (
        <Piece key={at} text={piece} />
      ))}
    </div>
  )
}

const Piece = memo(function Piece({ text }: { readonly text: string }): JSX.Element {
  return <p class="as-written">{text}</p>
})

/** So many blocks are compared at once: most of a long answer does not change with a word. */
const GROUP_BLOCKS = 50

function blocks(tokens: readonly Token[]): ComponentChildren {
  const starts = Array.from({ length: Math.ceil(tokens.length / GROUP_BLOCKS) }, (_, group) => group * GROUP_BLOCKS)
  return starts.map((at) => <BlockGroup key={at} tokens={tokens.slice(at, at + GROUP_BLOCKS)} />)
}

interface BlockGroupProps {
  readonly tokens: readonly Token[]
}

const BlockGroup = memo(
  ({ tokens }: BlockGroupProps): JSX.Element => (
    <>
      {tokens.map((token, at) => (
        <Block key={at} token={token} />
      ))}
    </>
  ),
  (before: BlockGroupProps, after: BlockGroupProps) =>
    before.tokens.length === after.tokens.length && before.tokens.every((token, at) => token === after.tokens[at]),
)

/** A token never changes: its elements are made once. */
const Block = memo(BlockOfToken)

function BlockOfToken({ token }: { readonly token: Token }): JSX.Element | null {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading': {
      // The page has its own headings: those of a text begin below them.
      const Heading = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as 'h3'
      return <Heading>{inline((token as Tokens.Heading).tokens)}</Heading>
    }
    case 'paragraph':
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return <p>{tokens === undefined ? withoutEntities(text) : inline(tokens)}</p>
    }
    case 'code':
      return <CodeBlock text={(token as Tokens.Code).text} />
    case 'blockquote':
      return <blockquote dir="auto">{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
    case 'list':
      return <List list={token as Tokens.List} />
    case 'table':
      return <Table table={token as Tokens.Table} />
    case 'hr':
      return <hr />
    default:
      return <p>{(token as { raw?: string }).raw ?? ''}</p>
  }
}

function CodeBlock({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="with-copy">
      <pre class="code" tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={() => text} />
    </div>
  )
}

function List({ list }: { readonly list: Tokens.List }): JSX.Element {
  const items = list.items.map((item, at) => (
    <li key={at}>
      {item.tokens.map((token, place) =>
        token.type === 'checkbox' ? (
          inlineOf(token, place)
        ) : token.type === 'text' && !list.loose ? (
          <span key={place}>{inline((token as Tokens.Text).tokens ?? [])}</span>
        ) : (
          <Block key={place} token={token} />
        ),
      )}
    </li>
  ))
  return list.ordered ? (
    <ol dir="auto" start={Number(list.start) || 1}>
      {items}
    </ol>
  ) : (
    <ul dir="auto">{items}</ul>
  )
}

function Table({ table }: { readonly table: Tokens.Table }): JSX.Element {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={texts.value.thread.table}>
      <table dir="auto">
        <thead>
          <tr>
            {table.header.map((cell, at) => (
              <th key={at} scope="col" {...alignmentOf(cell)}>
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, place) => (
                <td key={place} {...alignmentOf(cell)}>
                  {inline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** As the text says, such as to the right for numbers. */
function alignmentOf({ align }: Tokens.TableCell): { readonly style?: { readonly textAlign: string } } {
  return align === null ? {} : { style: { textAlign: align } }
}

function inline(tokens: readonly Token[]): ComponentChildren {
  return tokens.map(inlineOf)
}

/** A function and no component: an answer has thousands of these. */
function inlineOf(token: Token, at: number): ComponentChildren {
  switch (token.type) {
    case 'strong':
      return <strong key={at}>{inline((token as Tokens.Strong).tokens)}</strong>
    case 'em':
      return <em key={at}>{inline((token as Tokens.Em).tokens)}</em>
    case 'del':
      return <del key={at}>{inline((token as Tokens.Del).tokens)}</del>
    case 'codespan':
      return <code key={at}>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br key={at} />
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return (
        <SafeLink key={at} href={href}>
          {inline(tokens)}
        </SafeLink>
      )
    }
    case 'image': {
      // A picture of another host would tell that host who reads: it is a link.
      const { href, text } = token as Tokens.Image
      return (
        <SafeLink key={at} href={href}>
          {withoutEntities(text === '' ? href : text)}
        </SafeLink>
      )
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens === undefined ? withoutEntities(text) : inline(tokens)
    }
    case 'escape':
      return (token as Tokens.Escape).text
    case 'checkbox':
      return <Task key={at} done={(token as Tokens.Checkbox).checked} />
    default:
      return (token as { raw?: string }).raw ?? ''
  }
}

/** A sign in a text, and no control. */
function Task({ done }: { readonly done: boolean }): JSX.Element {
  const { taskDone, taskOpen } = texts.value.thread
  return (
    <span class="task" role="img" aria-label={done ? taskDone : taskOpen}>
      {done ? '☑' : '☐'}{' '}
    </span>
  )
}

function SafeLink({
  href: written,
  children,
}: {
  readonly href: string
  readonly children: ComponentChildren
}): JSX.Element {
  const href = withoutEntities(written)
  if (!isSafe(href)) return <>{children}</>
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}

export function isSafe(href: string): boolean {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(href).protocol)
  } catch {
    return false
  }
}
