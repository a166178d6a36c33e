// The playground's request as code to copy.
import { Modal, Stack } from "@mantine/core";
import { TextLink } from "../../parts/page/links.tsx";
import { baseUrlHere, Snippets } from "../../parts/secrets/snippets.tsx";
import { Note } from "../../parts/words/note.tsx";
import type { Message } from "./exchange.ts";

interface CodeDialogProps {
  opened: boolean;
  model: string;
  messages: readonly Message[];
  parameters: Readonly<Record<string, unknown>>;
  close(): void;
}

export function CodeDialog({ opened, model, messages, parameters, close }: CodeDialogProps) {
  return (
    <Modal opened={opened} onClose={close} title="Copy as code" size="xl">
      <Stack gap="sm">
        <Note>
          This conversation with its parameters, for your own program. The code needs an API key:{" "}
          <TextLink href="/settings/api-keys">create one</TextLink>.
        </Note>
        <Snippets {...{ model, messages, parameters }} baseUrl={baseUrlHere()} stream />
      </Stack>
    </Modal>
  );
}
