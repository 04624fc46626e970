"""The nouns: settings, records and errors. Nothing here touches a disk, a network or Prefect."""
