// Chooses the environment of all pages: keys, usage, limits and chats of environments never mix.
import type { Environment } from "../api/client.ts";
import { useSession } from "../api/session.tsx";
import { Choice } from "../parts/editing/choice.tsx";
import { environmentChoices } from "../parts/words/environments.ts";

export function EnvironmentMenu() {
  const { environment, environments, chooseEnvironment } = useSession();
  return (
    <Choice
      aria-label="Environment"
      size="xs"
      w={130}
      allowDeselect={false}
      data={environmentChoices(environments)}
      value={environment}
      onChange={(value) => value && chooseEnvironment(value as Environment)}
    />
  );
}
