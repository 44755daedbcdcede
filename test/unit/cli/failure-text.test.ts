import { expect, it } from 'vitest'
import { failureText } from '../../../src/cli/exit.ts'
import { ERRORS, GatewayError, type ErrorCode } from '../../../src/core/errors.ts'

it('says a failure in Chinese with its code and its details', () => {
  const failure = new GatewayError('PORT_IN_USE', 'port 8080 is taken; use --port')
  expect(failureText(failure, 'en')).toBe('port 8080 is taken; use --port (PORT_IN_USE)')
  expect(failureText(failure, 'zh')).toBe('端口已被占用（PORT_IN_USE）：port 8080 is taken; use --port')
})

it('has a Chinese sentence for every code', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    expect(failureText(new GatewayError(code, 'x'), 'zh')).toMatch(/^.*\p{Script=Han}.*（[A-Z_]+）：x$/u)
  }
})
