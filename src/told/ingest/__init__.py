"""The write path: observe → gate → extract → curate → commit."""
