"""The target environment: payload, target, frameworks, libraries, toolkits."""
