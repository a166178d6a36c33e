// The arguments and the result of a tool call, if they are stored.
import { Code, Stack, Text } from "@mantine/core";
import type { RequestDetail } from "../../api/types.ts";
import { Note } from "../../parts/words/note.tsx";

export function ToolContent({ request: { tool_content: content } }: { request: RequestDetail }) {
  if (content === null) {
    return (
      <Note>
        The arguments and the result were not stored, or you don't have access. An operator can turn on storing in{" "}
        <Code>headrace.yaml</Code>: <Code>tools.record: content</Code>.
      </Note>
    );
  }
  return (
    <Stack gap="xs">
      <Note>Credentials are removed, and long texts are shortened.</Note>
      <Kept label="Arguments">{content.arguments}</Kept>
      <Kept label="Result">{content.result}</Kept>
    </Stack>
  );
}

function Kept({ label, children }: { label: string; children: string }) {
  return (
    <div>
      <Text size="sm" mb={4}>
        {label}
      </Text>
      <Code
        block
        tabIndex={0}
        aria-label={label}
        mah="20rem"
        style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}
      >
        {indented(children)}
      </Code>
    </div>
  );
}

/** Indents JSON; truncated text is no longer valid JSON and stays as it is. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
