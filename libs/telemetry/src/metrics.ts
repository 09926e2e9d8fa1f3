/** The registry of one process, made from the table of definitions. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { createKnownWords, type KnownWords } from './known-words.ts';
import { metricDefinitions, type MetricDefinition, type MetricsRole } from './definitions.ts';

type Definitions = typeof metricDefinitions;
type Label<Definition extends MetricDefinition> = Definition['labels'][number];
type Made<Definition extends MetricDefinition> =
  Definition['type'] extends 'counter' ? Counter<Label<Definition>>
  : Definition['type'] extends 'gauge' ? Gauge<Label<Definition>> : Histogram<Label<Definition>>;

/** Every metric under its key in the table, and the registry that prints them. */
export type Metrics = { readonly [Key in keyof Definitions]: Made<Definitions[Key]> } & {
  readonly registry: Registry;
  /** Validators' words for what is wrong. */
  readonly words: KnownWords;
  /** Names of tools that were called: servers may offer others each day, and each is twenty series. */
  readonly toolNames: KnownWords;
};

/** A process prints what its role has, and everything where none is named; the rest is there, and nobody sees it. */
export function createMetrics(role?: MetricsRole): Metrics {
  const registry = new Registry();
  const made = Object.entries(metricDefinitions).map(([key, definition]: [string, MetricDefinition]) => {
    const seen = role === undefined || definition.role === undefined || definition.role === role;
    return [key, make(definition, seen ? [registry] : [])];
  });
  return { ...Object.fromEntries(made), registry, words: createKnownWords(50), toolNames: createKnownWords(64) } as Metrics;
}

function make(definition: MetricDefinition, registers: Registry[]): Counter | Gauge | Histogram {
  const common = { name: definition.name, help: definition.help, labelNames: [...definition.labels], registers };
  if (definition.type === 'counter') return new Counter(common);
  if (definition.type === 'gauge') return new Gauge(common);
  return new Histogram({ ...common, buckets: [...(definition.buckets ?? [])] });
}

const lagWindowMs = 5_000;

/** Feeds the event loop's lag until the returned function is called. Keeps no process alive. */
export function watchEventLoop(metrics: Metrics): () => void {
  const delays = monitorEventLoopDelay({ resolution: 20 });
  delays.enable();
  const timer = setInterval(() => {
    metrics.eventLoopLag.set(delays.percentile(99) / 1e9);
    delays.reset();
  }, lagWindowMs).unref();
  return () => {
    clearInterval(timer);
    delays.disable();
  };
}
