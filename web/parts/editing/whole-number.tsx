// A field for a positive whole number, without step buttons.
import { NumberInput, type NumberInputProps } from "@mantine/core";

export function WholeNumber(props: NumberInputProps) {
  return <NumberInput min={1} allowDecimal={false} hideControls {...props} />;
}
