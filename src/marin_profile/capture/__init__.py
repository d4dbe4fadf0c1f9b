"""What the user named goes in, the files of one capture come out, host by host."""
