import type { TreadleConfig } from './schema/config.ts';

/** Gives `treadle.config.ts` its types. Checking happens when the file is loaded, so that all faults are reported at once. */
export function defineConfig(config: TreadleConfig): TreadleConfig {
  return config;
}
