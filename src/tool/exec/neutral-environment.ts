/** Settings of a repository that make git run a program or wait for a person; given on its command line, they win. */
const GIT_SETTINGS: readonly (readonly [key: string, value: string])[] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.editor', 'false'],
  ['core.askPass', ''],
  ['credential.helper', ''],
  ['protocol.ext.allow', 'never'],
  // A folder of plain files that looks like a repository is not one: its "config" could be anybody's.
  ['safe.bareRepository', 'explicit'],
  ['log.showSignature', 'false'],
]

/** What every program gets so that a file in the workspace cannot make it start another one, and nothing waits for keys. */
export const NEUTRAL_ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_COUNT: String(GIT_SETTINGS.length),
  ...Object.fromEntries(
    GIT_SETTINGS.flatMap(([key, value], at) => [
      [`GIT_CONFIG_KEY_${at}`, key],
      [`GIT_CONFIG_VALUE_${at}`, value],
    ]),
  ),
  GIT_OPTIONAL_LOCKS: '0',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  GIT_PAGER: 'cat',
  GIT_EDITOR: 'false',
  GIT_SEQUENCE_EDITOR: 'false',
  PAGER: 'cat',
  EDITOR: 'false',
  VISUAL: 'false',
  HGPLAIN: '1',
}
