// Where no chat is stored yet: why, and how to store one.
import { Code, Paper, Stack, Text, Title } from "@mantine/core";
import { chatModel } from "../../api/models.ts";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { AccountOverview, ModelList } from "../../api/types.ts";
import { baseUrlHere, Snippets } from "../../parts/secrets/snippets.tsx";
import { Note } from "../../parts/words/note.tsx";

export function HowToStore() {
  const { isOperator, session } = useSession();
  const account = useRead<AccountOverview>("/v1/account");
  const models = useRead<ModelList>("/v1/models");
  const model = (models.data && chatModel(models.data)?.id) ?? "MODEL";
  return (
    <Paper withBorder p={{ base: "md", sm: "xl" }}>
      <Stack maw="52rem" mx="auto">
        <div>
          <Title order={2}>No chat is stored yet</Title>
          <Note mt={4}>
            Chats are kept only where somebody asks for it: a request with <Code>store: true</Code> is, with its
            messages, parameters and answer, and can be read here and by the API until it expires. Labels (
            <Code>metadata</Code>) help to find it again.
          </Note>
        </div>
        {account.data && (
          <Text size="sm">
            {account.data.store_chats
              ? `${session.account.name} stores every chat whose request does not say store: false.`
              : `${session.account.name} stores nothing unless a request says so.`}{" "}
            {isOperator
              ? "You can change that under Administration, Accounts."
              : "Whoever operates this server can change that."}
          </Text>
        )}
        <Snippets
          baseUrl={baseUrlHere()}
          model={model}
          messages={[{ role: "user", content: "Name three rivers." }]}
          parameters={{ store: true, metadata: { topic: "rivers" } }}
        />
      </Stack>
    </Paper>
  );
}
