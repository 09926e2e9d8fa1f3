/** The configuration of one of two releases of a product, `RELEASE` `old` or `new`: its agent has one tool, which the other release lacks. */
import { readFileSync } from 'node:fs';
import { defineConfig, defineTool, type TreadleConfig } from '@treadle/config';

const release = process.env['RELEASE'] ?? '';
const base = JSON.parse(readFileSync(process.env['BASE_CONFIG'] ?? '', 'utf8')) as TreadleConfig;

export default defineConfig({
  ...base,
  agents: { tester: { ...base.agents['tester']!, tools: [`${release}_tool`] } },
  functions: [
    defineTool({ name: `${release}_tool`, description: 'Says which release it is of.', input: { type: 'object', properties: {} }, effect: 'read', run: async () => {
      // Long enough for several workers to have a part in a run.
      await new Promise((resolve) => { setTimeout(resolve, 50); });
      return `of the ${release} release`;
    } }),
  ],
});
