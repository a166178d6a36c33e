// The policies that apply to a model's requests.
import { Stack, Text, Title } from "@mantine/core";
import type { ManagedModel } from "../../../api/types.ts";
import { policySentences } from "./policy-words.ts";

export function ModelPolicies({ model }: { model: ManagedModel }) {
  const sentences = policySentences(model);
  if (sentences.length === 0) return null;
  return (
    <div>
      <Title order={3} size="sm" mb="xs">
        Policies
      </Title>
      <Stack component="ul" gap={6} className="model-policies">
        {sentences.map((sentence) => (
          <Text component="li" key={sentence} size="sm" style={{ overflowWrap: "anywhere" }}>
            {sentence}
          </Text>
        ))}
      </Stack>
    </div>
  );
}
