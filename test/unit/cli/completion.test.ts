import { execFileSync } from 'node:child_process'
import { Command } from 'commander'
import { expect, it } from 'vitest'
import { completionScript, SHELLS } from '../../../src/cli/completion-scripts.ts'

function program(): Command {
  const clew = new Command('clew').option('--home <dir>', 'where')
  clew.command('start').option('--port <n>', "it's a port")
  const sessions = clew.command('sessions').description('conversations')
  sessions.command('show').option('--last <n>', 'how many')
  return clew
}

function bashOffers(...words: readonly string[]): readonly string[] {
  const typed = ['clew', ...words].map((word) => `'${word}'`).join(' ')
  const script = `${completionScript('bash', program())}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _clew; echo "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', script]).toString().trim().split(' ')
}

it('bash completes commands, their commands and options, also behind an argument', () => {
  expect(bashOffers('s')).toEqual(['start', 'sessions'])
  expect(bashOffers('sessions', '')).toContain('show')
  expect(bashOffers('sessions', 'show', '--')).toEqual(['--last', '--help'])
  expect(bashOffers('sessions', 'show', 'a-key', '--l')).toEqual(['--last'])
  expect(bashOffers('start', '--p')).toEqual(['--port'])
})

it('every shell has a script that names every command', () => {
  for (const shell of SHELLS) {
    const script = completionScript(shell, program())
    for (const name of ['start', 'sessions', 'show']) expect(script).toContain(name)
  }
})
