/**
 * The trials of new models in an API process: the configuration tells the fleet of them once, when the process starts or as soon as the
 * store takes it, and they are looked at from time to time for the metrics. A trial that the store has lost is begun again; one that it
 * has is left alone, since processes of another release may have told it.
 */
import { canaryDefinitions, chainSpecOf, type LoadedConfig } from '@treadle/config';
import type { CanaryStore } from '@treadle/engine';
import { createArms, judgeTrial } from '@treadle/models';
import { observeChains, observeTrial, type Metrics } from '@treadle/telemetry';
import { uuidv7 } from 'uuidv7';
import type { ApiDeps, ApiLogger } from '../dependencies.ts';

export interface TrialsSetup {
  readonly canaries: CanaryStore;
  readonly config: LoadedConfig;
  readonly metrics: Metrics;
  readonly logger: Pick<ApiLogger, 'warn'>;
}

const lookEveryMs = 5000;

/** One line says as much as many. */
const warnEveryMs = 10_000;

/** A store that does not take the trials now keeps back no API: it is told again. */
export async function startTrials(setup: TrialsSetup): Promise<{ readonly deps: Required<Pick<ApiDeps, 'arms' | 'trials'>>; look(): Promise<void>; stop(): void }> {
  const { canaries, config, metrics, logger } = setup;
  const definitions = canaryDefinitions(config);
  observeChains(metrics, Object.keys(config.chains).flatMap((name) => chainSpecOf(config, name) ?? []));
  const told = new Set<string>();
  let warnedMs = -Infinity;
  const warn = (error: unknown, message: string): void => {
    if (performance.now() - warnedMs < warnEveryMs) return;
    warnedMs = performance.now();
    logger.warn({ err: error }, message);
  };

  async function look(): Promise<void> {
    for (const [chain, definition] of Object.entries(definitions)) {
      if (!told.has(chain)) await canaries.declare(chain, definition);
      told.add(chain);
      const reading = await canaries.read(chain, { decisions: 0, runs: false });
      if (reading === null) await canaries.declare(chain, definition);
      observeTrial(metrics, { chain, model: reading?.state.definition.model ?? definition.model, stage: reading?.state.stage ?? 0 });
    }
  }

  const lookAgain = (): Promise<void> => look().catch((error: unknown) => { warn(error, 'the trials of new models cannot be looked at'); });
  await lookAgain();
  const timer = setInterval(() => { void lookAgain(); }, lookEveryMs).unref();
  return {
    deps: {
      arms: createArms(canaries, { onUnknown: (error) => { warn(error, 'nobody said which arm of a canary a new run is in; it is made as control'); } }),
      trials: {
        canaries, judge: judgeTrial, uuid: uuidv7, chains: Object.keys(definitions),
        onDecided: (chain, { decision, by, model, from_stage, to_stage }) => {
          metrics.canaryDecisions.inc({ chain, decision });
          observeTrial(metrics, { chain, model, stage: to_stage });
          logger.warn({ chain, model, decision, by, from_stage, to_stage }, 'the canary was moved by hand');
        },
      },
    },
    look, stop: () => { clearInterval(timer); },
  };
}
