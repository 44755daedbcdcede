import { CONNECTION_CASES } from './cases-connection.ts'
import { CONTROL_CASES } from './cases-controls.ts'
import { MESSAGE_CASES } from './cases-messages.ts'
import type { ConformanceCase } from './kit.ts'

export const ALL_CASES: readonly ConformanceCase[] = [...CONNECTION_CASES, ...MESSAGE_CASES, ...CONTROL_CASES]
