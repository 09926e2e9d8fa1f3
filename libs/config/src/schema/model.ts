/** One entry of `models`: a provider's model and how it is reached. */
import { z } from 'zod';
import { timeoutMs } from './names.ts';

export const providers = ['ollama', 'openai', 'anthropic', 'scripted'] as const;

const provider = z.enum(providers, `expected ${providers.slice(0, -1).join(', ')} or ${providers.at(-1)}`);

/** Where each provider is when nothing else is said; the scripted stand-in is nowhere. */
export const defaultBaseUrls: Readonly<Record<(typeof providers)[number], string>> = {
  ollama: 'http://127.0.0.1:11434', openai: 'https://api.openai.com/v1', anthropic: 'https://api.anthropic.com', scripted: 'http://127.0.0.1:11434',
};

const httpUrl = z.string().refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'expected an http or https URL');

const rate = z.int().min(1).max(1_000_000_000).nullable().default(null);

const perMtok = z.number().min(0).max(1_000_000);

export const modelSchema = z.strictObject({
  provider,
  /** The provider's own name for it. */
  model: z.string().min(1),
  /** Default: the provider's own address; see `defaultBaseUrls`. */
  base_url: httpUrl.optional().meta({ description: `Default: ${Object.entries(defaultBaseUrls).slice(0, -1).map(([name, url]) => `${url} for ${name}`).join(', ')}.` }),
  /** Tokens. */
  context_window: z.int().min(256).max(10_000_000).default(8192),
  /** Tokens. */
  max_output_tokens: z.int().min(1).max(1_000_000).default(1024),
  supports_tools: z.boolean().default(true),
  supports_images: z.boolean().default(false),
  /** Keys: with several, one that is refused or has no quota left gives way to the next. */
  credentials: z.array(z.string().min(1)).max(50, 'expected at most 50').refine((keys) => new Set(keys).size === keys.length, 'expected each key once').default([]),
  credential_strategy: z.enum(['fill_first', 'round_robin'], 'expected fill_first or round_robin').default('fill_first'),
  /** Of each credential, for all workers together; null = no bound. */
  rates: z.strictObject({ requests_per_minute: rate, tokens_per_minute: rate, in_flight: rate }).prefault({}),
  /** US dollars per million tokens; input from the provider's cache costs what other input does where nothing else is said. */
  price: z.strictObject({ input_per_mtok: perMtok.default(0), output_per_mtok: perMtok.default(0), cached_input_per_mtok: perMtok.nullish() }).prefault({}),
  first_token_timeout_ms: timeoutMs.default(60_000),
  idle_timeout_ms: timeoutMs.default(30_000),
}).transform((model) => ({ ...model, base_url: model.base_url ?? defaultBaseUrls[model.provider] }));

/** Percent of new runs, rising from 0: where a new model stands last in the chain, as a fallback. */
const stages = z.array(z.int().min(0).max(100)).min(2, 'expected 0 and at least one stage more').max(20)
  .refine((given) => given[0] === 0 && given.every((stage, index) => index === 0 || stage > (given[index - 1] ?? 0)), 'expected percentages that begin with 0 and rise, such as [0, 5, 25, 50, 100]');

/** The trial of a new model; see docs/canary.md. */
const canarySchema = z.strictObject({
  model: z.string(),
  stages: stages.default([0, 5, 25, 50, 100]),
  /** Ended runs of the canary before it goes on to the next stage. */
  min_runs: z.int().min(1).max(500).default(50),
  bounds: z.strictObject({
    /** Difference of rates: 0.02 = two points. */
    error_rate_delta: z.number().min(0).lt(1).default(0.02),
    latency_ratio: z.number().min(1).max(1000).default(1.5),
    cost_ratio: z.number().min(1).max(1000).default(2),
  }).prefault({}),
});

export const chainSchema = z.strictObject({
  models: z.array(z.string()).min(1, 'expected at least one model'),
  canary: canarySchema.nullish(),
});
