// Shown while no chat is stored: why, and how to store one.
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
          <Title order={2}>No stored chats yet</Title>
          <Note mt={4}>
            A chat is stored if its request has <Code>store: true</Code> . You can then read its messages, parameters
            and answer here and through the API until it expires. Labels (<Code>metadata</Code>) help you find the chat
            again.
          </Note>
        </div>
        {account.data && (
          <Text size="sm">
            {account.data.store_chats
              ? `${session.account.name} stores every chat unless its request has store: false.`
              : `${session.account.name} stores only chats whose request has store: true.`}{" "}
            {isOperator
              ? "You can change that under Administration, Accounts."
              : "An operator of this server can change that."}
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
