import { relative, sep } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes longest, in its order: begun last, one of them would go on alone while the other forks have nothing to do. */
const LONGEST = [
  'test/system/chaos.test.ts',
  'test/system/attack.test.ts',
  'test/browser/dashboard.test.ts',
  'test/browser/thread.test.ts',
  'test/browser/use.test.ts',
  'test/system/cluster.test.ts',
  'test/browser/nothing-vanishes.test.ts',
]

/** Then what waits for other programs, and what goes on for long by itself. */
const LONG = ['test/browser/', 'test/system/', 'test/property/', 'test/crash/']

/**
 * Files of one project stay together, since a fork is only kept for the project it began with. Within it the order does not
 * depend on what ran before on this machine, but for files of one rank: of them the longer one as vitest remembers or
 * guesses it.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project))]
    const rank = ({ project, moduleId }: TestSpecification): number =>
      projects.indexOf(project) * 1_000 + rankOf(relative(this.ctx.config.root, moduleId).split(sep).join('/'))
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}

function rankOf(path: string): number {
  const place = LONGEST.indexOf(path)
  if (place >= 0) return place
  const kind = LONG.findIndex((folder) => path.startsWith(folder))
  return LONGEST.length + (kind < 0 ? LONG.length : kind)
}
