// A field for a whole number of at least one, without buttons that count up and down.
import { NumberInput, type NumberInputProps } from "@mantine/core";

export function WholeNumber(props: NumberInputProps) {
  return <NumberInput min={1} allowDecimal={false} hideControls {...props} />;
}
