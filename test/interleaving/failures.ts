/** Plays scenarios until enough of them have violated something. */
import { play, type Scenario, type Switches } from './play.ts';

/** The first scenarios that violate something, with what they violate. */
export async function failures(scenarios: readonly Scenario[], switches: Switches = {}, enough = 1): Promise<string[]> {
  const found: string[] = [];
  for (const scenario of scenarios) {
    const problems = await play(scenario, switches);
    if (problems.length > 0) found.push(`${JSON.stringify(scenario)}: ${problems.join('; ')}`);
    if (found.length >= enough) break;
  }
  return found;
}
