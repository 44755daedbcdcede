import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { serviceName, launchdAgent, systemdUnit, type ServiceSettings } from '../../../src/app/service.ts'
import { run } from '../../support/built-gateway.ts'

const SETTINGS: ServiceSettings = {
  command: ['/usr/bin/node', '/opt/clew & co/main.js', 'start'],
  home: '/home/a b/100%',
  environmentFile: '/home/a b/100%/clew.env',
  isSystem: false,
  stopSeconds: 20,
}

it('a systemd unit quotes blanks and doubles percent signs', () => {
  const unit = systemdUnit(SETTINGS)
  expect(unit).toContain('Environment="CLEW_HOME=/home/a b/100%%"\n')
  expect(unit).toContain('EnvironmentFile=-/home/a b/100%%/clew.env\n')
  expect(unit).toContain('ExecStart=/usr/bin/node "/opt/clew & co/main.js" start\n')
  expect(unit).toContain('WantedBy=default.target\n')
  expect(systemdUnit({ ...SETTINGS, isSystem: true })).toContain('WantedBy=multi-user.target\n')
})

it('a launchd agent escapes what XML takes for its own', () => {
  const agent = launchdAgent(SETTINGS, 'dev.clew.gateway')
  expect(agent).toContain('<string>/opt/clew &amp; co/main.js</string>')
  expect(agent).toContain('<string>/home/a b/100%</string>')
})

it('each home has a service of its own, and the default one the plain name', () => {
  expect(serviceName('/home/ada/.clew', '/home/ada/.clew')).toBe('clew')
  const [one, other] = [serviceName('/srv/My Bot', '/home/ada/.clew'), serviceName('/opt/My Bot', '/home/ada/.clew')]
  expect(one).toMatch(/^clew-my-bot-[0-9a-f]{6}$/u)
  expect(other).not.toBe(one)
  expect(serviceName('/', '/home/ada/.clew')).toMatch(/^clew-[0-9a-f]{6}$/u)
})

it.runIf(existsSync('/usr/bin/systemd-analyze'))('systemd accepts the unit', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'clew-unit-'))
  const file = join(folder, 'clew-test.service')
  const command = [process.execPath, join(folder, 'main 100%.js'), 'start']
  try {
    for (const isSystem of [true, false]) {
      await writeFile(file, systemdUnit({ ...SETTINGS, command, isSystem }))
      const { code, output } = await run('systemd-analyze', ['verify', '--man=no', file])
      // Other units of this machine may have faults of their own.
      expect({ code, faults: output.split('\n').filter((line) => line.includes('clew-test')) }).toEqual({
        code: 0,
        faults: [],
      })
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})
