/** Which providers there are. A new one is a folder beside this file and a line here. */
import type { ProviderRegistry } from '../provider.ts';
import { anthropic } from './anthropic/provider.ts';
import { ollama } from './ollama/provider.ts';
import { openai } from './openai/provider.ts';
import { scripted } from './scripted/provider.ts';

export const builtInProviders: ProviderRegistry = { ollama, openai, anthropic, scripted };
