"""What everything in the package stands on: errors, trees, tracing. It imports the native module, and nothing of the
package but what pickles name (weft._pickled)."""
