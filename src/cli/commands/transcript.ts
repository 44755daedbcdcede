import { resolve } from 'node:path'
import { nodeFiles } from '../../platform/node-files.ts'
import type { CommonOptions } from '../connect.ts'
import { printJson, printLines } from '../output.ts'
