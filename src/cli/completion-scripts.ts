import type { Command } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** A place on the command line, `sessions show` for example, and what may follow it. */
interface Place {
  readonly path: string
  readonly names: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly { readonly flag: string; readonly description: string }[]
}

/** Made from the commands themselves, so that it never lags behind them. */
export function completionScript(shell: Shell, program: Command): string {
  const places = placesOf(program, '')
  if (shell === 'bash') return bashScript(places)
  return shell === 'zsh' ? zshScript(places) : fishScript(places)
}

function placesOf(command: Command, path: string): readonly Place[] {
  const visible = command.commands.map((each) => ({ name: each.name(), description: each.description() }))
  const options = command.options.flatMap(({ long, description }) =>
    long === undefined || long === null ? [] : [{ flag: long, description }],
  )
  const help = { flag: '--help', description: 'how it is used' }
  return [
    { path, names: visible, options: [...options, help] },
    ...command.commands.flatMap((each) => placesOf(each, path === '' ? each.name() : `${path} ${each.name()}`)),
  ]
}

/** The longest place first: what follows the last known word is an argument. */
function branches(places: readonly Place[], add: (words: string) => string): string {
  return places
    .toSorted((a, b) => b.path.length - a.path.length)
    .map(({ path, names, options }) => {
      const words = [...names.map(({ name }) => name), ...options.map(({ flag }) => flag)].join(' ')
      return `    ${path === '' ? '*' : `'${path}'*`}) ${add(words)} ;;`
    })
    .join('\n')
}

function bashScript(places: readonly Place[]): string {
  return `# clew completion for bash: source <(clew completion bash)
_clew() {
  local current="\${COMP_WORDS[COMP_CWORD]}" taken='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) break ;; esac
    taken="\${taken:+$taken }$word"
  done
  case $taken in
${branches(places, (words) => `COMPREPLY=($(compgen -W '${words}' -- "$current"))`)}
  esac
}
complete -o default -F _clew clew
`
}

function zshScript(places: readonly Place[]): string {
  return `#compdef clew
# clew completion for zsh: source <(clew completion zsh)
_clew() {
  local taken='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case $word in -*) break ;; esac
    taken="\${taken:+$taken }$word"
  done
  case $taken in
${branches(places, (words) => `compadd -- ${words}`)}
  esac
}
compdef _clew clew
`
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, names, options }) => {
    const condition = path === '' ? '__fish_use_subcommand' : `__clew_at ${path}`
    return [
      ...names.map(
        ({ name, description }) => `complete -c clew -n '${condition}' -a ${name} -d '${fishText(description)}'`,
      ),
      ...options.map(
        ({ flag, description }) =>
          `complete -c clew -n '${condition}' -l ${flag.slice(2)} -d '${fishText(description)}'`,
      ),
    ]
  })
  return `# clew completion for fish: clew completion fish | source
function __clew_at
  set -l typed (commandline -opc)
  for at in (seq (count $argv))
    test "$typed[(math $at + 1)]" = "$argv[$at]"; or return 1
  end
end
${lines.join('\n')}
`
}

function fishText(text: string): string {
  return text.replaceAll('\\', String.raw`\\`).replaceAll("'", String.raw`\'`)
}
