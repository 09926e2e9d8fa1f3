/**
 * A worker's share in the trials of new models: it reports how runs came out (the `finish` duty), judges where it is time to, also when no
 * run ends, and says what was decided: a rollback as a warning, with the numbers in the decision's record.
 */
import { canaryDefinitions, chainSpecOf, type LoadedConfig } from '@treadle/config';
import { judgeWhenDue, type Arms, type CanaryDeps, type CanaryStore, type FinishDeps } from '@treadle/engine';
import { createArms, judgeTrial } from '@treadle/models';
import { observeChains, observeTrial, type Logger, type Metrics } from '@treadle/telemetry';
import { uuidv7 } from 'uuidv7';

export interface Trials {
  /** For the end of runs. */
  readonly finishing: NonNullable<FinishDeps['canary']>;
  /** For the sub-agents that are started here: they are new runs like any other. */
  readonly arms: Arms;
  /** Judges what the configuration knows of, and sees where it has got to. */
  round(): Promise<void>;
}

export function createTrials({ canaries, config, metrics, logger }: { readonly canaries: CanaryStore; readonly config: LoadedConfig; readonly metrics: Metrics; readonly logger: Logger }): Trials {
  const chains = Object.keys(canaryDefinitions(config));
  observeChains(metrics, Object.keys(config.chains).flatMap((name) => chainSpecOf(config, name) ?? []));
  const deps: CanaryDeps = {
    canaries, judge: judgeTrial, uuid: uuidv7,
    onDecided: (chain, { id, decision, reason, model, from_stage, to_stage }) => {
      metrics.canaryDecisions.inc({ chain, decision });
      observeTrial(metrics, { chain, model, stage: to_stage });
      const fields = { chain, model, decision, reason, from_stage, to_stage, decision_id: id };
      if (decision === 'rollback') logger.warn(fields, 'the canary is rolled back: new runs no longer begin on it');
      else logger.info(fields, 'the canary goes on to its next stage');
    },
  };
  return {
    arms: createArms(canaries, { onUnknown: (error) => { logger.warn({ err: error }, 'nobody said which arm of a canary a sub-agent is in; it is made as control'); } }),
    finishing: { ...deps, onFailed: (error) => { logger.warn({ err: error }, 'a canary could not be judged; it is tried again'); } },
    round: async () => {
      for (const chain of chains) {
        await judgeWhenDue(deps, chain);
        const reading = await canaries.read(chain, { decisions: 0, runs: false });
        if (reading !== null) observeTrial(metrics, { chain, model: reading.state.definition.model, stage: reading.state.stage });
      }
    },
  };
}
