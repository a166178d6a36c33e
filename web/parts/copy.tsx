// Text to take along: a button that copies it and says so, alone or with the text as a block of code.
import { ActionIcon, Button, Code, CopyButton, Group, Tooltip } from "@mantine/core";
import { CheckIcon, CopyIcon } from "@primer/octicons-react";

interface CopyProps {
  value: string;
  /** What is copied, for who cannot see the icon: "Copy the key". */
  label: string;
}

const wrapped = { whiteSpace: "pre-wrap", overflowWrap: "anywhere" } as const;

export function CopyAction({ value, label }: CopyProps) {
  return (
    <CopyButton value={value} timeout={2000}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon variant="subtle" color={copied ? "green" : "gray"} onClick={copy} aria-label={label}>
            {copied ? <CheckIcon /> : <CopyIcon />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

export function CopyText({ value, label }: CopyProps) {
  return (
    <CopyButton value={value} timeout={2000}>
      {({ copied, copy }) => (
        <Button
          variant={copied ? "light" : "default"}
          size="xs"
          leftSection={copied ? <CheckIcon /> : <CopyIcon />}
          onClick={copy}
        >
          {copied ? "Copied" : label}
        </Button>
      )}
    </CopyButton>
  );
}

interface CopyBlockProps extends CopyProps {
  /** Shows a long line whole, over several; otherwise it is scrolled, as code is. */
  wrap?: boolean;
}

/** A block of code or a secret, and the button that copies it. */
export function CopyBlock({ value, label, wrap = false }: CopyBlockProps) {
  return (
    <div>
      <Code block tabIndex={0} aria-label={label} mah="24rem" style={wrap ? wrapped : {}}>
        {value}
      </Code>
      <Group justify="end" mt={6}>
        <CopyText value={value} label={label} />
      </Group>
    </div>
  );
}
