// The tools that a member may use: a form for users who may change them, else read-only.
import { Stack, Text, Title } from "@mantine/core";
import type { Member } from "../../api/types.ts";
import { toolListWords } from "../../parts/tools/tool-entries.ts";
import { ToolListForm } from "../../parts/tools/tool-list-form.tsx";
import { Note } from "../../parts/words/note.tsx";

interface MemberToolsProps {
  member: Member;
  /** The reason why the tools may not be changed; undefined if they may. */
  why: string | undefined;
}

export function MemberTools({ member, why }: MemberToolsProps) {
  if (why !== undefined) {
    return (
      <Stack gap="xs">
        <Title order={3} size="sm">
          Tools
        </Title>
        <Text size="sm">{toolListWords(member.tools)}</Text>
        <Note>{why}</Note>
      </Stack>
    );
  }
  return (
    <ToolListForm
      // A saved change resets the form.
      key={JSON.stringify(member.tools)}
      path={`/v1/members/${member.id}`}
      tools={member.tools}
      about={`Tools that ${member.name} may use, including with their own keys and allowed apps`}
      stale={["/v1/members"]}
      said={`The tools of ${member.name} were saved and take effect immediately.`}
    />
  );
}
