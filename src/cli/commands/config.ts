import { configSchema } from '../../config/explain.ts'
import { checkConfig } from '../../config/load.ts'
import { formatProblem } from '../../config/problem.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import type { CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { homeAccessProblems } from '../../app/home-access.ts'
import { homePaths } from '../../app/home.ts'
import { printJson, printLines } from '../output.ts'

export async function checkConfiguration(options: CommonOptions): Promise<void> {
  const paths = homePaths(options.home, process.env)
  const { config: path } = paths
  const warnings = await homeAccessProblems(nodeFiles, paths)
  const problems = await checkConfig({ files: nodeFiles, path, env: process.env })
  const isOk = problems.every(({ severity }) => severity !== 'error')
  if (!isOk) process.exitCode = EXIT_FAILURE
  if (options.json === true) {
    printJson({
      file: path,
      ok: isOk,
      problems: problems.map((problem) => ({ ...problem, text: formatProblem(problem) })),
      warnings,
    })
    return
  }
  const found = [...problems.map(formatProblem), ...(isOk ? [`${path}: no problems`] : [])]
  printLines([...found, ...warnings.map((warning) => `warning: ${warning}`)])
}

export function printSchema(): void {
  printJson(configSchema())
}
