"""The write path: parse → gate → extract → curate → commit → embed."""
