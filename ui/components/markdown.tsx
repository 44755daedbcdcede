import { Lexer, type Token, type Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { useMemo } from 'preact/hooks'

/** Longer texts are shown as they are: reading them as markdown would hold up the page. */
const MAX_CHARS = 100_000

/** Model text as elements. HTML in it is shown as letters, links lead only to web and mail addresses. */
export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const tokens = useMemo(() => (text.length > MAX_CHARS ? undefined : lex(text)), [text])
  if (tokens === undefined) return <pre class="plain">{text}</pre>
  return <div class="markdown">{blocks(tokens)}</div>
}

function lex(text: string): readonly Token[] | undefined {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text)
  } catch {
    return undefined
  }
}

function blocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, at) => <Block key={at} token={token} />)
}

function Block({ token }: { readonly token: Token }): JSX.Element | null {
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
      return <p>{tokens === undefined ? text : inline(tokens)}</p>
    }
    case 'code':
      return <CodeBlock text={(token as Tokens.Code).text} />
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
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
    <pre class="code" tabIndex={0}>
      <code>{text}</code>
    </pre>
  )
}

function List({ list }: { readonly list: Tokens.List }): JSX.Element {
  const items = list.items.map((item, at) => (
    <li key={at}>
      {item.task && (
        <input type="checkbox" checked={item.checked === true} disabled aria-label={item.text.slice(0, 80)} />
      )}
      {item.tokens.map((token, place) =>
        token.type === 'text' && !list.loose ? (
          <span key={place}>{inline((token as Tokens.Text).tokens ?? [])}</span>
        ) : (
          <Block key={place} token={token} />
        ),
      )}
    </li>
  ))
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>
}

function Table({ table }: { readonly table: Tokens.Table }): JSX.Element {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, at) => (
              <th key={at} scope="col">
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, place) => (
                <td key={place}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inline(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, at) => <Inline key={at} token={token} />)
}

function Inline({ token }: { readonly token: Token }): JSX.Element {
  switch (token.type) {
    case 'strong':
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>
    case 'em':
      return <em>{inline((token as Tokens.Em).tokens)}</em>
    case 'del':
      return <del>{inline((token as Tokens.Del).tokens)}</del>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return <SafeLink href={href}>{inline(tokens)}</SafeLink>
    }
    case 'image': {
      // A picture of another host would tell that host who reads: it is a link.
      const { href, text } = token as Tokens.Image
      return <SafeLink href={href}>{text === '' ? href : text}</SafeLink>
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return <>{tokens === undefined ? text : inline(tokens)}</>
    }
    case 'escape':
      return <>{(token as Tokens.Escape).text}</>
    default:
      return <>{(token as { raw?: string }).raw ?? ''}</>
  }
}

function SafeLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }): JSX.Element {
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
