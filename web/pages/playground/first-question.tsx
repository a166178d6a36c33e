// The empty conversation: sample questions that one click sends.
import { Button, Group, Stack, Title } from "@mantine/core";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Note } from "../../parts/words/note.tsx";

interface FirstQuestionProps {
  model: string;
  isChat: boolean;
  ask(question: string): void;
  /** Brings the cleared conversation back; null if nothing was cleared. */
  bringBack: (() => void) | null;
}

const chats = [
  "Explain in three sentences what a headrace is.",
  "Write a TypeScript function that groups a list by a key.",
  "Name five questions to ask before choosing a database.",
];
const beginnings = ["Once upon a time", "The three rules of a good letter are", "function add(a, b) {"];

export function FirstQuestion({ model, isChat, ask, bringBack }: FirstQuestionProps) {
  return (
    <Stack align="center" gap="xs" py="xl" ta="center">
      <Title order={2} size="lg">
        {isChat ? `Ask ${model} a question` : `Let ${model} continue a text`}
      </Title>
      <Note maw="32rem">
        {isChat
          ? "Write a message below, or start with one of these examples. Requests count as usage of this account."
          : "This model does not chat. It continues your text and does not see earlier texts. Write below, or start with one of these examples."}
      </Note>
      <Group gap="xs" justify="center" mt="xs">
        {(isChat ? chats : beginnings).map((question) => (
          <SmallButton key={question} className="example" onClick={() => ask(question)}>
            {question}
          </SmallButton>
        ))}
      </Group>
      {bringBack && (
        <Button variant="subtle" size="xs" mt="md" onClick={bringBack}>
          Restore the cleared conversation
        </Button>
      )}
    </Stack>
  );
}
