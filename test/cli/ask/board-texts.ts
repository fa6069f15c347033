import fc from 'fast-check';

/** Any text that JavaScript can hold, halves of characters and control characters included. */
export const anyCodeUnits = fc
  .array(fc.oneof(fc.nat({ max: 0xff }), fc.nat({ max: 0xffff })), { maxLength: 300 })
  .map((units) => String.fromCharCode(...units));
