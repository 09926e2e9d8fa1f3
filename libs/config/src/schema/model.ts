/** One entry of `models`: a provider's model and how it is reached. */
import { z } from 'zod';
import { later, notSupportedYet } from './later.ts';
import { timeoutMs } from './names.ts';

export const providers = ['ollama', 'scripted'] as const;
const laterProviders: readonly string[] = ['openai', 'anthropic'];

const provider = z.enum(providers, {
  error: ({ input }) => (typeof input === 'string' && laterProviders.includes(input)
    ? `provider "${input}" is ${notSupportedYet}; expected ${providers.join(' or ')}` : `expected ${providers.join(' or ')}`),
});

const httpUrl = z.string().refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'expected an http or https URL');

const noRates = { requests_per_minute: null, tokens_per_minute: null, in_flight: null };

const perMtok = z.number().min(0).max(1_000_000).default(0);

export const modelSchema = z.strictObject({
  provider,
  /** The provider's own name for it. */
  model: z.string().min(1),
  base_url: httpUrl.default('http://127.0.0.1:11434'),
  /** Tokens. */
  context_window: z.int().min(256).max(10_000_000).default(8192),
  /** Tokens. */
  max_output_tokens: z.int().min(1).max(1_000_000).default(1024),
  supports_tools: z.boolean().default(true),
  supports_images: z.boolean().default(false),
  credentials: z.array(z.string().min(1)).max(1, `several credentials are ${notSupportedYet}`).default([]),
  credential_strategy: later('fill_first'),
  rates: later({}, noRates),
  /** US dollars per million tokens. */
  price: z.strictObject({ input_per_mtok: perMtok, output_per_mtok: perMtok }).prefault({}),
  first_token_timeout_ms: timeoutMs.default(60_000),
  idle_timeout_ms: timeoutMs.default(30_000),
});

export const chainSchema = z.strictObject({
  models: z.array(z.string()).min(1, 'expected at least one model'),
  canary: later(null),
});
