import { closeSync, openSync } from 'node:fs'
import { spawn } from 'node:child_process'

/** Whether this process has a terminal that it can still reach: a closed window takes it away. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/** Shows a text in the user's pager. False when there is none, or when it could not be started. */
export async function showInPager(text: string): Promise<boolean> {
  const command = process.env['PAGER'] ?? 'less'
  if (command === '' || command === 'cat') return false
  return new Promise((resolve) => {
    // Through a shell, because PAGER may hold options. LESS: colours as they are, and leave a short text on the screen.
    const pager = spawn(command, {
      shell: true,
      stdio: ['pipe', 'inherit', 'inherit'],
      env: { LESS: 'FRX', ...process.env },
    })
    pager.on('error', () => resolve(false))
    // 127: the shell found no such program.
    pager.on('close', (code) => resolve(code !== 127))
    // Quitting before the end of the text is no failure.
    pager.stdin.on('error', () => undefined)
    pager.stdin.end(text)
  })
}
