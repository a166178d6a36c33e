// Links to other pages of the dashboard: in a text, as a button, and as the name of a row that opens the record.
import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";

interface To {
  href: string;
  children: ReactNode;
  "aria-label"?: string;
  title?: string;
}

/** A link within a sentence, underlined because color alone is not accessible. */
export function TextLink(props: To) {
  return <Anchor component={Link} inherit underline="always" {...props} />;
}

/** A link outside of a sentence. */
export function PlainLink(props: AnchorProps & To) {
  return <Anchor component={Link} size="sm" {...props} />;
}

export function LinkButton(props: ButtonProps & To) {
  return <Button component={Link} {...props} />;
}

/** A secondary button that is a link. */
export function PlainLinkButton(props: ButtonProps & To) {
  return <LinkButton variant="default" {...props} />;
}

/** The name of a row, which opens the row's record. */
export function NameButton({ show, children }: { show(): void; children: ReactNode }) {
  return (
    <Anchor component="button" type="button" size="sm" fw={500} ta="left" onClick={show}>
      {children}
    </Anchor>
  );
}
