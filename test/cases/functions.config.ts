/** The configuration that `CASES_CONFIG` names, and beside it tools that are functions, which JSON cannot hold. */
import { readFileSync } from 'node:fs';
import { defineConfig, defineTool, type TreadleConfig } from '@treadle/config';

const input = { type: 'object', properties: {} };

export default defineConfig({
  ...JSON.parse(readFileSync(process.env['CASES_CONFIG'] ?? '', 'utf8')) as TreadleConfig,
  functions: [
    defineTool({ name: 'nul_text', description: 'Gives a NUL.', input, effect: 'read', run: () => 'a\0b' }),
    defineTool({ name: 'nul_throw', description: 'Throws a NUL.', input, effect: 'read', run: () => { throw new Error('bad\0luck \ud800'); } }),
    defineTool({ name: 'raw_bytes', description: 'Gives bytes.', input, effect: 'read', run: () => Buffer.from('00fffe', 'hex') }),
    defineTool({ name: 'utf16_bytes', description: 'Gives UTF-16.', input, effect: 'read', run: () => Buffer.from('\ufeffhé🌍', 'utf16le') }),
  ],
});
