/** Builds the images under test: the product's, from its own Dockerfile as it is, and the scripted model. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GenericContainer } from 'testcontainers';
import { docker, root } from './engine.ts';

export const image = 'treadle:containers-test';
export const modelImage = 'treadle-test-model';

export async function buildImages(): Promise<void> {
  await GenericContainer.fromDockerfile(root, 'deploy/docker/Dockerfile').withCache(true).build(image, { deleteOnExit: false });
  const context = mkdtempSync(join(tmpdir(), 'treadle-model-'));
  cpSync(join(root, 'test/containers/model'), context, { recursive: true });
  cpSync(join(root, 'libs/testkit/src/model-server'), join(context, 'model-server'), { recursive: true });
  await docker(['build', '--quiet', '--tag', modelImage, context]);
  rmSync(context, { recursive: true });
}
