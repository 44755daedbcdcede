import { ALL_RULES } from './all-rules.ts'
import type { ProviderRule } from './rule.ts'

const INTRODUCTION = `# Provider rules

What each model API demands of a request. This page is generated from \`src/simulator/rules\`; a test compares the two.
The checkers behind it are exported from \`clew/testing\` and sit inside the provider simulators. They share no code with
the history pipeline: they are its judges.

**Profiles.** \`strict\` (the checkers' default) is what every version and host of an API accepts; \`current\` (the
simulators' default) is what the service refuses today. Rules marked *strict* apply only in the former.

**Status** is the HTTP status of the refusal; the body has the provider's own shape and words. **Source** is the
provider's documentation, its own validator or SDK types, or a public thread that quotes the refusal; **date** is when
that source said so.
`

/** The text of `docs/maintainers/provider-rules.md`. */
export function renderRuleDocs(): string {
  const sections = Object.entries(ALL_RULES).map(([api, table]) => {
    const rows = Object.entries(table).map(([name, rule]: [string, ProviderRule]) => row(`${api}/${name}`, rule))
    return `\n## ${api}\n\n| rule | demands | status | source | date |\n| --- | --- | --- | --- | --- |\n${rows.join('\n')}\n`
  })
  return INTRODUCTION + sections.join('')
}

function row(name: string, rule: ProviderRule): string {
  const demand = rule.strictOnly === true ? `${rule.demand} *strict*` : rule.demand
  const cells = [`\`${name}\``, demand, String(rule.status ?? 400), rule.source, rule.date]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
