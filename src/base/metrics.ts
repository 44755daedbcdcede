/**
 * Counters, gauges and histograms in Prometheus' text form. Every label has a closed set of values, or a bound on their
 * number, given when the metric is made; anything else is counted as `other`, so no client can grow the page.
 */
export interface Metrics {
  counter<L extends string = never>(definition: MetricDefinition<L>): Counter<L>
  gauge<L extends string = never>(definition: MetricDefinition<L>): Gauge<L>
  histogram<L extends string = never>(definition: HistogramDefinition<L>): Histogram<L>
  /** Runs before each exposition: the place to set gauges that are read rather than counted. Must not throw. */
  onCollect(callback: () => void | Promise<void>): void
  /** The page for `GET /metrics`, of type `METRICS_CONTENT_TYPE`. */
  expose(): Promise<string>
}

export interface MetricDefinition<L extends string = never> {
  readonly name: string
  readonly help: string
  readonly labels?: { readonly [label in L]: readonly string[] | AtMost }
}

/** Values that are not known beforehand: the first ones that are seen, up to this many. */
export interface AtMost {
  readonly atMost: number
}

export interface HistogramDefinition<L extends string = never> extends MetricDefinition<L> {
  /** Upper bounds, ascending; `+Inf` is added. */
  readonly buckets: readonly number[]
}

export type LabelValues<L extends string> = { readonly [label in L]: string }
/** Nothing to give for a metric without labels. */
type LabelArguments<L extends string> = [L] extends [never] ? [] : [labels: LabelValues<L>]

export interface Counter<L extends string = never> {
  increase(by: number, ...labels: LabelArguments<L>): void
}

export interface Gauge<L extends string = never> {
  set(value: number, ...labels: LabelArguments<L>): void
}

export interface Histogram<L extends string = never> {
  observe(value: number, ...labels: LabelArguments<L>): void
}

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** From a cache hit to a long tool call. */
export const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

const OTHER = 'other'
/** More is a mistake in the definition, not a matter of traffic. */
const MAX_SERIES_PER_METRIC = 2_000

interface Family {
  readonly name: string
  readonly lines: () => string[]
}

export function createMetrics(): Metrics {
  const families = new Map<string, Family>()
  const collectors: (() => void | Promise<void>)[] = []

  const add = (definition: MetricDefinition<string>, type: string, samples: () => Iterable<string>): void => {
    const { name, help } = definition
    if (!/^[a-z_][a-z0-9_]*$/.test(name)) throw new Error(`${name} is not a metric name`)
    if (families.has(name)) throw new Error(`the metric ${name} exists already`)
    const head = [`# HELP ${name} ${help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}`, `# TYPE ${name} ${type}`]
    families.set(name, { name, lines: () => [...head, ...samples()] })
  }

  return {
    counter(definition) {
      const series = new Series(definition, () => ({ value: 0 }))
      add(definition, 'counter', () => series.map((labels, cell) => [`${definition.name}${labels} ${cell.value}`]))
      return {
        increase(by, ...labels) {
          if (by > 0) series.at(labels[0]).value += by
        },
      }
    },
    gauge(definition) {
      const series = new Series(definition, () => ({ value: 0 }))
      add(definition, 'gauge', () => series.map((labels, cell) => [`${definition.name}${labels} ${shown(cell.value)}`]))
      return {
        set(value, ...labels) {
          series.at(labels[0]).value = value
        },
      }
    },
    histogram(definition) {
      const series = new Series(definition, () => new Distribution(definition.buckets))
      add(definition, 'histogram', () => series.map((labels, cell) => cell.lines(definition.name, labels)))
      return {
        observe(value, ...labels) {
          series.at(labels[0]).observe(value)
        },
      }
    },
    onCollect(callback) {
      collectors.push(callback)
    },
    async expose() {
      for (const collect of collectors) await collect()
      return `${[...families.values()].flatMap((family) => family.lines()).join('\n')}\n`
    },
  }
}

interface Label {
  readonly name: string
  readonly allowed: Set<string>
  /** Values it may have; more are added only where they were not all given. */
  readonly most: number
}

function toLabel(name: string, values: readonly string[] | AtMost): Label {
  if ('atMost' in values) return { name, allowed: new Set(), most: values.atMost }
  const allowed = new Set(values)
  return { name, allowed, most: allowed.size }
}

/** The cells of one metric, one per combination of label values that has been seen. */
class Series<Cell> {
  readonly #labels: readonly Label[]
  readonly #create: () => Cell
  readonly #cells = new Map<string, Cell>()

  constructor(definition: MetricDefinition<string>, create: () => Cell) {
    this.#labels = Object.entries(definition.labels ?? {}).map(([name, values]) => toLabel(name, values))
    const combinations = this.#labels.reduce((product, { most }) => product * (most + 1), 1)
    if (combinations > MAX_SERIES_PER_METRIC) throw new Error(`${definition.name} could have ${combinations} series`)
    this.#create = create
    // A metric without labels is there from the start, with its zero.
    if (this.#labels.length === 0) this.at(undefined)
  }

  at(values: Readonly<Record<string, string>> | undefined): Cell {
    const key = this.#keyOf(values ?? {})
    let cell = this.#cells.get(key)
    if (cell === undefined) {
      cell = this.#create()
      this.#cells.set(key, cell)
    }
    return cell
  }

  *map(lines: (labels: string, cell: Cell) => Iterable<string>): Generator<string> {
    for (const [labels, cell] of this.#cells) yield* lines(labels, cell)
  }

  #keyOf(values: Readonly<Record<string, string>>): string {
    if (this.#labels.length === 0) return ''
    const pairs = this.#labels.map(({ name, allowed, most }) => {
      const value = values[name] ?? OTHER
      if (allowed.size < most) allowed.add(value)
      return `${name}="${escapeLabel(allowed.has(value) ? value : OTHER)}"`
    })
    return `{${pairs.join(',')}}`
  }
}

class Distribution {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0
  #count = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = bounds.map(() => 0)
  }

  observe(value: number): void {
    this.#sum += value
    this.#count++
    const index = this.#bounds.findIndex((bound) => value <= bound)
    if (index >= 0) this.#counts[index] = (this.#counts[index] ?? 0) + 1
  }

  *lines(name: string, labels: string): Generator<string> {
    const inner = labels === '' ? '' : `${labels.slice(1, -1)},`
    let below = 0
    for (const [index, bound] of this.#bounds.entries()) {
      below += this.#counts[index] ?? 0
      yield `${name}_bucket{${inner}le="${bound}"} ${below}`
    }
    yield `${name}_bucket{${inner}le="+Inf"} ${this.#count}`
    yield `${name}_sum${labels} ${this.#sum}`
    yield `${name}_count${labels} ${this.#count}`
  }
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

function shown(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
