/** One entry of `models`: a provider's model and how it is reached. */
import { z } from 'zod';
import { later } from './later.ts';
import { timeoutMs } from './names.ts';

export const providers = ['ollama', 'openai', 'anthropic', 'scripted'] as const;

const provider = z.enum(providers, `expected ${providers.slice(0, -1).join(', ')} or ${providers.at(-1)}`);

/** Where each provider is when nothing else is said; the scripted stand-in is nowhere. */
export const defaultBaseUrls: Readonly<Record<(typeof providers)[number], string>> = {
  ollama: 'http://127.0.0.1:11434', openai: 'https://api.openai.com/v1', anthropic: 'https://api.anthropic.com', scripted: 'http://127.0.0.1:11434',
};

const httpUrl = z.string().refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'expected an http or https URL');

const rate = z.int().min(1).max(1_000_000_000).nullable().default(null);

const perMtok = z.number().min(0).max(1_000_000).default(0);

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
  /** US dollars per million tokens. */
  price: z.strictObject({ input_per_mtok: perMtok, output_per_mtok: perMtok }).prefault({}),
  first_token_timeout_ms: timeoutMs.default(60_000),
  idle_timeout_ms: timeoutMs.default(30_000),
}).transform((model) => ({ ...model, base_url: model.base_url ?? defaultBaseUrls[model.provider] }));

export const chainSchema = z.strictObject({
  models: z.array(z.string()).min(1, 'expected at least one model'),
  canary: later(null),
});
