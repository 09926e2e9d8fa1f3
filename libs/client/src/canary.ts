/** Models, chains and the trials of new models, as the API answers them. */

export interface ListedModel {
  readonly name: string;
  readonly provider: string;
  readonly model: string;
  readonly context_window: number;
  readonly max_output_tokens: number;
  readonly supports_tools: boolean;
  readonly supports_images: boolean;
}

export type CanaryStatus = 'active' | 'paused' | 'rolled_back';

export interface ListedChain {
  readonly name: string;
  readonly models: readonly string[];
  /** Null where no model of it is on trial. `stage`: percent of new runs. */
  readonly canary: { readonly model: string; readonly stage: number; readonly status: CanaryStatus } | null;
}

export type CanaryOrder = { readonly action: 'pause' | 'promote' | 'rollback' } | { readonly action: 'set'; readonly stage: number };

export interface Canary {
  readonly chain: string;
  readonly model: string;
  readonly status: CanaryStatus;
  readonly stage: number;
  readonly stages: readonly number[];
  readonly min_runs: number;
  readonly bounds: { readonly error_rate_delta: number; readonly latency_ratio: number; readonly cost_ratio: number };
  readonly since: string;
  /** What the judge says now. */
  readonly verdict: { readonly decision: 'hold' | 'promote' | 'rollback'; readonly reason: string; readonly numbers: Readonly<Record<string, unknown>> };
  /** Newest first. */
  readonly decisions: readonly {
    readonly id: string; readonly at: string; readonly decision: 'promote' | 'rollback' | 'pause' | 'set'; readonly by: string; readonly model: string;
    readonly from_stage: number; readonly to_stage: number; readonly status: CanaryStatus; readonly reason: string; readonly numbers: Readonly<Record<string, unknown>>;
  }[];
}
