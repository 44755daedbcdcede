import { expect, it } from 'vitest'
import { launchdAgent, systemdUnit, type ServiceSettings } from '../../../src/app/service/service-text.ts'

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
