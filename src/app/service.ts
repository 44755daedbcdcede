import { createHash } from 'node:crypto'
import { basename } from 'node:path'

/** What a service manager has to know to run a gateway. */
export interface ServiceSettings {
  /** The program and its arguments. */
  readonly command: readonly string[]
  readonly home: string
  /** A file of `NAME=value` lines with keys; read when it is there. */
  readonly environmentFile: string
  /** For the whole machine instead of one user. */
  readonly isSystem: boolean
  /** Longer than the time running answers get. */
  readonly stopSeconds: number
}

export function systemdUnit(settings: ServiceSettings): string {
  const { command, home, environmentFile, isSystem, stopSeconds } = settings
  return `[Unit]
Description=Clew agent gateway
After=network-online.target
Wants=network-online.target

[Service]
Environment=${unitWord(`CLEW_HOME=${home}`)}
EnvironmentFile=-${environmentFile.replaceAll('%', '%%')}
ExecStart=${command.map(unitWord).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
TimeoutStopSec=${stopSeconds}
LimitNOFILE=65536

[Install]
WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}
`
}

/** For macOS. It reads no environment file: keys stand in `bridge.json`, or in the shell that loads it. */
export function launchdAgent({ command, home, stopSeconds }: ServiceSettings, label: string): string {
  const list = command.map((word) => `    <string>${xmlText(word)}</string>`).join('\n')
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${xmlText(label)}</string>
  <key>ProgramArguments</key>
  <array>
${list}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>CLEW_HOME</key>
    <string>${xmlText(home)}</string>
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>${stopSeconds}</integer>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
</dict>
</plist>
`
}

/** Quoted for systemd, which replaces percent signs and dollars itself. */
function unitWord(word: string): string {
  const escaped = word
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('%', '%%')
    .replaceAll('$', '$$$$')
  return /^[\w./:@=+-]+$/u.test(word) ? word : `"${escaped}"`
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const HASH_CHARS = 6

/** One name per home, so that several gateways of one machine do not share a service; the default home has the plain name. */
export function serviceName(home: string, defaultHome: string): string {
  if (home === defaultHome) return 'clew'
  const words = basename(home)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, '-')
    .replaceAll(/^-|-$/gu, '')
  const hash = createHash('sha256').update(home).digest('hex').slice(0, HASH_CHARS)
  return ['clew', ...(words === '' ? [] : [words.slice(0, 40)]), hash].join('-')
}
